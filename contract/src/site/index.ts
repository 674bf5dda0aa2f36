// What a file of a site is served as: the platform and `muster dev` decide it by the same code.
export * from './content-type.ts'
export * from './folder.ts'
export * from './form.ts'
export * from './not-found.ts'
export * from './site-headers.ts'
