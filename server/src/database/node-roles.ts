/** How the names of the database roles of joined nodes begin. */
export const DATABASE_ROLE = 'muster_node_'
