"""Foundations: functions, small networks and processors, before there is a GPU."""
