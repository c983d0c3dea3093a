# SPDX-License-Identifier: Apache-2.0
# The kernels of this folder that are compiled for each instruction set, and the numbers in which sets differ. Every
# kernel gets a generated source that defines them, MOKA_LANES and MOKA_BLOCK, and includes the kernel's .inc file.
#
# To add an instruction set, add its numbers here and its flags in src/CMakeLists.txt.

set(vector_lanes_base 4)  # floats of a vector
set(vector_lanes_avx2 8)
set(vector_lanes_avx512 16)
set(vector_lanes_avxvnni 8)
set(vector_lanes_avx512vnni 16)
set(vector_block_base 8)  # channels of a block
set(vector_block_avx2 8)
set(vector_block_avx512 16)
set(vector_block_avxvnni 8)
set(vector_block_avx512vnni 16)

# Writes vector/NAME_SET.cpp in the build folder for each of SETS and appends it to vector_files_SET. DEFINES: the macro
# that names the function, and that function without its set. NUMBERS: for each set, NUMBER=VALUE.
function(moka_vector_kernel name)
  cmake_parse_arguments(K "" "" "SETS;DEFINES;INCLUDES;NUMBERS_base;NUMBERS_avx2;NUMBERS_avx512;NUMBERS_avxvnni;NUMBERS_avx512vnni" ${ARGN})
  list(GET K_DEFINES 0 macro)
  list(GET K_DEFINES 1 function)
  foreach(set ${K_SETS})
    if(NOT set IN_LIST vector_sets)
      continue()
    endif()
    set(text "#define ${macro} ${function}_${set}\n")
    foreach(number LANES=${vector_lanes_${set}} BLOCK=${vector_block_${set}} ${K_NUMBERS_${set}})
      string(REPLACE "=" " " number ${number})
      string(APPEND text "#define MOKA_${number}\n")
    endforeach()
    foreach(file ${K_INCLUDES})
      string(APPEND text "#include \"devices/cpu/vector/${file}.inc\"\n")
    endforeach()
    set(path ${CMAKE_CURRENT_BINARY_DIR}/vector/${name}_${set}.cpp)
    file(CONFIGURE OUTPUT ${path} CONTENT "${text}" @ONLY)
    set(vector_files_${set} ${vector_files_${set}} ${path} PARENT_SCOPE)
  endforeach()
endfunction()

set(all_sets SETS base avx2 avx512)
moka_vector_kernel(average ${all_sets} DEFINES MOKA_AVERAGE average INCLUDES average)
moka_vector_kernel(batch_norm ${all_sets} DEFINES MOKA_BATCH_NORM batch_norm INCLUDES batch_norm)
moka_vector_kernel(channel_norm ${all_sets} DEFINES MOKA_CHANNEL_NORM channel_norm INCLUDES channel_norm)
moka_vector_kernel(dense ${all_sets} DEFINES MOKA_DENSE dense INCLUDES dense
  NUMBERS_base NARROW_PIXELS=10 PIXELS=6 WIDE_PIXELS=4 NUMBERS_avx2 NARROW_PIXELS=10 PIXELS=6 WIDE_PIXELS=4
  NUMBERS_avx512 NARROW_PIXELS=10 PIXELS=10 WIDE_PIXELS=9)
moka_vector_kernel(depthwise ${all_sets} DEFINES MOKA_DEPTHWISE depthwise INCLUDES depthwise
  NUMBERS_base PIXELS=8 NUMBERS_avx2 PIXELS=8 NUMBERS_avx512 PIXELS=14)
moka_vector_kernel(doubles ${all_sets} DEFINES MOKA_DOUBLE_LOOPS double_loops INCLUDES doubles)
moka_vector_kernel(doubles_exact ${all_sets} DEFINES MOKA_DOUBLE_LOOPS exact_double_loops INCLUDES doubles)
moka_vector_kernel(gemm ${all_sets} DEFINES MOKA_GEMM gemm INCLUDES gemm
  NUMBERS_base ROWS=6 WIDE_ROWS=4 DEPTH=256 NUMBERS_avx2 ROWS=6 WIDE_ROWS=4 DEPTH=256
  NUMBERS_avx512 ROWS=14 WIDE_ROWS=8 DEPTH=512)
moka_vector_kernel(gradients ${all_sets} DEFINES MOKA_GRADIENTS gradients INCLUDES gradients
  NUMBERS_base SUMS=10 NUMBERS_avx2 SUMS=10 NUMBERS_avx512 SUMS=25)
moka_vector_kernel(int8 SETS avxvnni avx512vnni DEFINES MOKA_INT8_GEMM int8_gemm INCLUDES int8
  NUMBERS_avxvnni VECTORS=2 ROWS=6 NUMBERS_avx512vnni VECTORS=2 ROWS=12)
moka_vector_kernel(lines ${all_sets} DEFINES MOKA_LINES lines INCLUDES lines
  NUMBERS_base ROWS=6 VECTORS=2 NUMBERS_avx2 ROWS=6 VECTORS=2 NUMBERS_avx512 ROWS=14 VECTORS=2)
moka_vector_kernel(loops ${all_sets} DEFINES MOKA_LOOPS loops INCLUDES loops)
moka_vector_kernel(narrow ${all_sets} DEFINES MOKA_NARROW narrow INCLUDES narrow
  NUMBERS_base SUMS=12 NUMBERS_avx2 SUMS=12 NUMBERS_avx512 SUMS=24)
moka_vector_kernel(outer ${all_sets} DEFINES MOKA_OUTER outer INCLUDES outer
  NUMBERS_base ROWS=4 BLOCKS=1 NUMBERS_avx2 ROWS=4 BLOCKS=3 NUMBERS_avx512 ROWS=8 BLOCKS=3)
moka_vector_kernel(pointwise ${all_sets} DEFINES MOKA_POINTWISE pointwise INCLUDES pointwise
  NUMBERS_base PIXELS=6 WIDE_PIXELS=4 HALF_PIXELS=0 DEPTH=0
  NUMBERS_avx2 PIXELS=6 WIDE_PIXELS=4 HALF_PIXELS=0 DEPTH=256
  NUMBERS_avx512 PIXELS=14 WIDE_PIXELS=9 HALF_PIXELS=10 DEPTH=0)
moka_vector_kernel(rows ${all_sets} DEFINES MOKA_ROW_LOOPS row_loops INCLUDES rows)
moka_vector_kernel(sampled ${all_sets} DEFINES MOKA_SAMPLED sampled INCLUDES sampled)
moka_vector_kernel(small_channels ${all_sets} DEFINES MOKA_SMALL_CHANNELS small_channels INCLUDES small_channels
  NUMBERS_base PIXELS=6 NUMBERS_avx2 PIXELS=6 NUMBERS_avx512 PIXELS=14)
moka_vector_kernel(strassen ${all_sets} DEFINES MOKA_STRASSEN strassen INCLUDES strassen
  NUMBERS_base ROWS=6 NUMBERS_avx2 ROWS=6 NUMBERS_avx512 ROWS=14)
moka_vector_kernel(widen ${all_sets} DEFINES MOKA_WIDEN widen INCLUDES widen)
moka_vector_kernel(winograd ${all_sets} DEFINES MOKA_WINOGRADS winograds INCLUDES winograd)
