package io.nrt4j;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaCodeUnit;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import java.util.ArrayList;
import java.util.List;

/** A public method or constructor must not speak of a type that its caller cannot name. */
final class SignaturesArePublic extends ArchCondition<JavaClass> {
    SignaturesArePublic() {
        super("have public signatures of public types only");
    }

    @Override
    public void check(final JavaClass type, final ConditionEvents events) {
        for (final JavaCodeUnit unit : type.getCodeUnits()) {
            if (unit.getModifiers().contains(JavaModifier.PUBLIC)) {
                final List<JavaClass> named = new ArrayList<>(unit.getRawParameterTypes());
                named.add(unit.getRawReturnType());
                for (final JavaClass each : named) {
                    final boolean ours = each.getPackageName().startsWith("io.nrt4j");
                    if (ours && !each.getModifiers().contains(JavaModifier.PUBLIC)) {
                        events.add(SimpleConditionEvent.violated(unit, unit.getFullName() + " names " + each.getName()));
                    }
                }
            }
        }
    }
}
