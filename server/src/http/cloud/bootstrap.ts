import { getBootstrap } from '@musterhost/contract'
import { describePlatform } from '../../cloud/bootstrap.ts'
import { implement } from '../implement.ts'

export const bootstrap = [implement(getBootstrap, ({ ctx }) => describePlatform(ctx))]
