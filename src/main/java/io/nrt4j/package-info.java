/** The vocabulary that all of nrt4j shares: status, failure, configuration, tensors. */
package io.nrt4j;
