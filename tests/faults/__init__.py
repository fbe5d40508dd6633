"""Crashes, full disks and power cuts, tried out at every single step at the file system.

``make faults`` (``python -m tests.faults``) tries all of them on every command that writes, and prints what became of
them; a small share is part of the quick tests (``tests/test_faults.py``).
"""
