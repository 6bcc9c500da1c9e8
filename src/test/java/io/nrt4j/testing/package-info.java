/** What tests share: child processes, waiting with a limit, a clock set by hand, free ports. */
package io.nrt4j.testing;
