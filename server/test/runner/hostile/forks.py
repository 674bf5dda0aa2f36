# A fork bomb.
import os, sys, time

count = 0
for _ in range(100000):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        count += 1
    except OSError:
        break
print("forked", count, flush=True)
sys.exit(1)
