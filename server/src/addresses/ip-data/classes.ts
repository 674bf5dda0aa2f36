// What an address may be beside somebody's home: the classes that have limits of their own.

export const ADDRESS_CLASSES = ['hosting', 'proxy', 'tor', 'vpn'] as const
export type AddressClass = (typeof ADDRESS_CLASSES)[number]
