# SPDX-License-Identifier: Apache-2.0
# cmake -DIN=file -DOUT=file.cpp -DNAMESPACE=ns -DNAME=name -P embed.cmake
# Writes the bytes of IN as ns::<name>_bytes and ns::<name>_size. With INCLUDES, a list of files, each replaces its line
# /*INCLUDE file*/ in IN.
file(READ ${IN} hex HEX)
foreach(include ${INCLUDES})
  get_filename_component(file ${include} NAME)
  string(HEX "/*INCLUDE ${file}*/\n" mark)
  file(READ ${include} content HEX)
  string(REPLACE "${mark}" "${content}" hex "${hex}")
endforeach()
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x0a,)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "namespace ${NAMESPACE} {\nextern const unsigned char ${NAME}_bytes[];\nextern const unsigned long ${NAME}_size;\nconst unsigned char ${NAME}_bytes[] = {\n${bytes}};\nconst unsigned long ${NAME}_size = ${size};\n}\n")
