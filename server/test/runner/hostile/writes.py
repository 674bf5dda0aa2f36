# Tries to write where a lobby may not, also through links and through /proc.
import os

written = []
PLACES = ["/", "/build", "/usr", "/usr/bin", "/etc", "/bin", "/lib", "/platform/bin", "/sys", "/dev", "/proc", "/proc/sys"]
for place in PLACES:
    for kind in ("file", "folder", "link"):
        path = os.path.join(place, f"hostile-{kind}")
        try:
            if kind == "file":
                open(path, "w").close()
            elif kind == "folder":
                os.mkdir(path)
            else:
                os.symlink("/etc/shadow", path)
            written.append(path)
        except OSError:
            pass
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/net/ipv4/ip_forward",
             "/proc/self/uid_map", "/build/server.mjs", "/etc/passwd", "/proc/1/root/etc/passwd", "/platform/bin/node"):
    try:
        with open(path, "w") as file:
            file.write("1")
        written.append(path)
    except OSError:
        pass
for path in ("/dev/hostile", "/tmp/hostile"):
    try:
        os.mknod(path, 0o60600, os.makedev(8, 0))
        written.append(path)
    except OSError:
        pass
print("written", written, flush=True)
