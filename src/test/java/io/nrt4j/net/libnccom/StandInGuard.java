package io.nrt4j.net.libnccom;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** For tests over {@link NccomStandIn}: skipped where it cannot be built, begun with it as new, and failed when a call to it was wrong. */
public final class StandInGuard implements BeforeAllCallback, BeforeEachCallback, AfterEachCallback {
    private long violations;

    @Override
    public void beforeAll(final ExtensionContext context) {
        NccomStandIn.assumeGcc();
    }

    @Override
    public void beforeEach(final ExtensionContext context) {
        NccomStandIn.reset();
        violations = NccomStandIn.violations();
    }

    @Override
    public void afterEach(final ExtensionContext context) {
        assertThat(NccomStandIn.violations()).as("wrong calls").isEqualTo(violations);
        NccomStandIn.reset();
    }
}
