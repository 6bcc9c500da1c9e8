package io.nrt4j.tools;

import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Sizes as people write them. */
final class Sizes {
    private Sizes() {
    }

    /** Sizes such as {@code 4096}, {@code 64K}, {@code 16M}, {@code 1G}. */
    static final class Converter implements ITypeConverter<Long> {
        @Override
        public Long convert(final String text) {
            if (!text.matches("[1-9][0-9]{0,9}[KMG]?")) {
                throw new TypeConversionException("'" + text + "' is no size such as 4096, 64K, 16M or 1G");
            }
            final char unit = text.charAt(text.length() - 1);
            final int shift = switch (unit) {
                case 'K' -> 10;
                case 'M' -> 20;
                case 'G' -> 30;
                default -> 0;
            };
            return Long.parseLong(shift == 0 ? text : text.substring(0, text.length() - 1)) << shift;
        }
    }

    /** The shortest way to write a size that the converter reads back. */
    static String text(final long bytes) {
        final String units = "KMG";
        for (int i = units.length(); i > 0; i--) {
            final int shift = 10 * i;
            if (bytes != 0 && bytes % (1L << shift) == 0) {
                return (bytes >> shift) + units.substring(i - 1, i);
            }
        }
        return Long.toString(bytes);
    }
}
