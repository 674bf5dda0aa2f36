# Makes links out of its folders, and follows them.
import os

OUT = ["/", "/etc/shadow", "/root", "/var", "/proc/1/root", "/proc/1/cwd", "/proc/self/root/..", "/build/../..", "/scratch/../.."]
# What the root and the build of a lobby have.
OWN = {".dockerenv", "bin", "build", "dev", "etc", "lib", "lib32", "lib64", "libx32", "platform", "proc", "sbin", "scratch", "sys", "tmp", "usr", "server.mjs"}
reached = []
for number, target in enumerate(OUT):
    link = f"/scratch/link-{number}"
    os.symlink(target, link)
    try:
        if os.path.isdir(link):
            reached += [f"{target}/{name}" for name in os.listdir(link) if target.startswith("/") and name not in OWN]
        else:
            open(link).close()
            reached.append(target)
    except OSError:
        pass
for source in ("/etc/passwd", "/build/server.mjs", "/proc/1/environ"):
    try:
        os.link(source, "/scratch/hard")
        reached.append(source)
    except OSError:
        pass
print("reached", reached, flush=True)
