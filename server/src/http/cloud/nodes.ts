import { cancelNodeDrain, drainNode, listNodes, removeNode } from '@musterhost/contract'
import * as all from '../../cloud/nodes.ts'
import { implement } from '../implement.ts'

export const nodes = [
  implement(listNodes, ({ ctx }) => all.listAllNodes(ctx)),
  implement(drainNode, ({ ctx, body }) => all.drain(ctx, body)),
  implement(cancelNodeDrain, ({ ctx, body }) => all.cancelDrain(ctx, body)),
  implement(removeNode, ({ ctx, body }) => all.remove(ctx, body)),
]
