import { cancelNodeDrain, drainNode, getNodeUse, listNodes, removeNode } from '@musterhost/contract'
import { tellNodeUse } from '../../cloud/nodes/node-use.ts'
import * as all from '../../cloud/nodes/nodes.ts'
import { implement } from '../implement.ts'

export const nodes = [
  implement(listNodes, ({ ctx }) => all.listAllNodes(ctx)),
  implement(getNodeUse, ({ ctx, query }) => tellNodeUse(ctx, query)),
  implement(drainNode, ({ ctx, body }) => all.drain(ctx, body)),
  implement(cancelNodeDrain, ({ ctx, body }) => all.cancelDrain(ctx, body)),
  implement(removeNode, ({ ctx, body }) => all.remove(ctx, body)),
]
