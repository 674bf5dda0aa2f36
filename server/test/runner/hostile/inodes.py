# Makes empty files until there is no room: the kernel counts their inodes as memory of the lobby.
import os

for number in range(10_000_000):
    os.close(os.open(f"/tmp/{number}", os.O_CREAT | os.O_WRONLY))
