/** The command line. */
package io.nrt4j.tools;
