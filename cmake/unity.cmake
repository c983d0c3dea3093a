# A cold build spends most of its time on headers that every file of a target includes. moka_unity(TARGET) compiles several
# files together, unless MOKA_UNITY is OFF. Names in unnamed namespaces are therefore unique in a target that calls it.
option(MOKA_UNITY "Compile files in groups: a cold build is faster, a change compiles more" ON)
function(moka_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${MOKA_UNITY} UNITY_BUILD_BATCH_SIZE 10)
endfunction()
