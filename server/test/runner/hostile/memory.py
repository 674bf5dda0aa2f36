# Takes memory until there is none.
held = []
while True:
    held.append(bytearray(1 << 20))
