# Uses more processor time than it has, in many processes.
import os

for _ in range(16):
    if os.fork() == 0:
        while True:
            pass
print("spinning", flush=True)
while True:
    pass
