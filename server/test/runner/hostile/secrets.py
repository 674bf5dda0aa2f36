# Searches every readable file of the sandbox's process list and of likely places for the secrets of others.
import os

WORD = os.environ["SECRET_WORD"].replace(" ", "-").encode()
found = []


def search(path):
    try:
        with open(path, "rb") as file:
            if WORD in file.read(1 << 20):
                found.append(path)
    except OSError:
        pass


for name in os.listdir("/proc"):
    if name.isdigit():
        for file in ("environ", "cmdline", "maps", "mountinfo"):
            search(f"/proc/{name}/{file}")
        for folder in ("root", "cwd"):
            for path in ("etc/shadow", "root/.bash_history", "var/lib/muster/admin-token"):
                if os.path.exists(f"/proc/{name}/{folder}/{path}"):
                    found.append(f"/proc/{name}/{folder}/{path}")
# Only processes of this lobby are visible.
if len([name for name in os.listdir("/proc") if name.isdigit()]) > 8:
    found.append("processes of others")
for path in ("/etc/shadow", "/root", "/home", "/var", "/run", "/srv", "/mnt", "/proc/kcore", "/dev/mem", "/dev/sda"):
    try:
        # A container engine hides files behind empty ones.
        if os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1):
            found.append(path)
    except OSError:
        pass
print("found", found, flush=True)
