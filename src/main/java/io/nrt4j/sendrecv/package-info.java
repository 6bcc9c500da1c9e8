/** Asynchronous point-to-point transfer of tensors between logical neuron cores. */
package io.nrt4j.sendrecv;
