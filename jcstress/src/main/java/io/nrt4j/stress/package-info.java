/** What the stress tests of all rooms share. */
package io.nrt4j.stress;
