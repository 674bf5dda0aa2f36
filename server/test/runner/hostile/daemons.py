# Leaves processes behind that have left its session and process group.
import os, time

for _ in range(8):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
print("started", flush=True)
