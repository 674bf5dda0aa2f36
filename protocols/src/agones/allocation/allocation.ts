// The allocation service of Agones for this platform, as the command `muster allocator` serves it.
export { type AllocatorOptions, createAllocator } from './allocator.ts'
export { AllocationEndpoint } from './endpoint.ts'
