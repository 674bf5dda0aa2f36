# Fills its disk with large files, then with empty ones, and tries to write past its end.
import os, sys, time

failed = set()


def fill(name, size):
    try:
        with open(f"/scratch/{name}", "wb") as file:
            for _ in range(size >> 16):
                file.write(bytes(1 << 16))
        return True
    except OSError as error:
        failed.add(error.errno)
        return False


number = 0
while number < 64 and fill(number, 1 << 22):
    number += 1
while number < 100_000 and fill(number, 0):
    number += 1
try:
    # A file with a hole costs nothing, until it is written.
    with open("/scratch/0", "r+b") as file:
        os.ftruncate(file.fileno(), 1 << 40)
        os.posix_fallocate(file.fileno(), 0, 1 << 40)
except OSError as error:
    failed.add(error.errno)
print("failed", sorted(failed), flush=True)
# As a server that needs what it could not write. The platform looks at the disk each second.
time.sleep(1.5)
sys.exit(1)
