/** How the names of the database roles of joined nodes begin. */
export const DATABASE_ROLE = 'muster_node_'
/** NOTIFY, when a node was removed or its link was revoked. */
export const NODES_CHANNEL = 'nodes'
