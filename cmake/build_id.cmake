# SPDX-License-Identifier: Apache-2.0
# cmake -D OUT=file -D FOR=namespace -D HEADER=file -D FILES=list -D COMPILER=text -P build_id.cmake
# Writes moka::<namespace>::build(), which HEADER declares: a hash of the contents of FILES and of COMPILER.
set(all "${COMPILER}")
foreach(file ${FILES})
  file(SHA256 ${file} hash)
  string(APPEND all " ${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUT} "#include \"${HEADER}\"\nnamespace moka::${FOR} {\nstd::string_view build() { return \"${hash}\"; }\n}  // namespace moka::${FOR}\n")
