# SPDX-License-Identifier: Apache-2.0
# moka_unity(TARGET) compiles the files of a target in groups, which include each header once. MOKA_UNITY=OFF compiles every
# file alone. The names in unnamed namespaces of such a target must differ from file to file.
option(MOKA_UNITY "Compile files in groups: a cold build is faster, a change compiles more" ON)
function(moka_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${MOKA_UNITY} UNITY_BUILD_BATCH_SIZE 30)
endfunction()
