# Writes as much output as it can, in short lines and in one that never ends.
import os

SHORT = b"x" * 63 + b"\n"
for _ in range(400):
    os.write(1, SHORT * 1024)
for _ in range(200):
    os.write(2, b"y" * 65536)
