// For devices whose shared memory is no faster than buffers (Features::local_memory): an invocation computes a block of
// the result and reads what it needs from buffers itself.

uint block() {
  return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}
