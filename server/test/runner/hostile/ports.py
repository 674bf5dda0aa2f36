# Tries the platform's ports, the machine, a neighbour, the metadata address, and addresses that are not its own.
import os, socket

SERVICES, NEIGHBOUR, OWN = os.environ["SERVICES"], os.environ["NEIGHBOUR"], os.environ["ADDRESS"]
IP_FREEBIND, IP_TRANSPARENT = 15, 19
reached = []


def attempt(host, port, source=None, option=None):
    try:
        with socket.socket() as one:
            one.settimeout(1)
            if option is not None:
                one.setsockopt(socket.IPPROTO_IP, option, 1)
            if source is not None:
                one.bind((source, 0))
            one.connect((host, port))
            reached.append(f"{host} {port} from {source}")
    except OSError:
        pass


for host, ports in {
    "127.0.0.1": (22, 4999, 5432, 8080),
    SERVICES: (22, 5432, 8080, 20000),
    NEIGHBOUR: (20000, 22),
    "169.254.169.254": (80,),
    "192.0.2.2": (22, 4999, 8080),
}.items():
    for port in ports:
        attempt(host, port)
for source in (NEIGHBOUR, SERVICES, "192.0.2.2", "9.9.9.9"):
    for option in (None, IP_FREEBIND, IP_TRANSPARENT):
        attempt(SERVICES, 4999, source, option)
# The one that is allowed shows that the attempts could have succeeded.
attempt(SERVICES, 4999, OWN)
print("reached", reached == [f"{SERVICES} 4999 from {OWN}"] or reached, flush=True)
