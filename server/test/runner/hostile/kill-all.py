# Sends SIGKILL to every process that it may signal, by number and all at once.
import os, signal

for pid in range(2, 40_000):
    if pid != os.getpid():
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
try:
    os.kill(-1, signal.SIGKILL)
except OSError:
    pass
print("killed", flush=True)
