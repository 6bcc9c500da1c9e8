/* How the stand-in is told to misbehave. See nccom_standin.c. */
#ifndef NCCOM_SETTINGS_H
#define NCCOM_SETTINGS_H

struct settings {
    _Atomic long null_connects;
    _Atomic long null_accepts;
    _Atomic long null_requests;
    long slow_test;
    long room;
    long no_device_memory;
    long sockets;
    long connect_waits;
    long init_waits;
    _Atomic long hold_reg;
    long recording;
    long steal_signals;
    int any_failure;
};

extern struct settings settings;

#endif
