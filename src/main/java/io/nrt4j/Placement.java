package io.nrt4j;

/** Where the bytes of a tensor live. Ports {@code nrt_tensor_placement_t}. */
public enum Placement {
    /** Host memory. */
    HOST,
    /** Memory of an accelerator, addressed by the host runtime; carries a device index. */
    DEVICE
}
