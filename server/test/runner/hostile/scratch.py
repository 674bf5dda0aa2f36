# Fills each writable folder.
import os

full = []
for folder in ("/tmp", "/scratch", "/dev/shm"):
    try:
        with open(os.path.join(folder, "fill"), "wb") as file:
            for _ in range(4096):
                file.write(bytes(1 << 16))
    except OSError:
        full.append(folder)
    os.remove(os.path.join(folder, "fill"))
print("full", full, flush=True)
