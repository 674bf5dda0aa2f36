// The parameters of the address that the browser opened this page with. They are read before the router changes the address: it
// takes a code of digits for a number.
export const RETURNED: URLSearchParams = new URLSearchParams(location.search)
