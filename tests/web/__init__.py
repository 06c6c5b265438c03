"""Tests of the web room, on real sockets of the loopback interface."""
