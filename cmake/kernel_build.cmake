# cmake -D OUT=file -D FILES=list -D COMPILER=text -P kernel_build.cmake
# Writes moka::kernel::build(): a hash of the contents of FILES and of COMPILER.
set(all "${COMPILER}")
foreach(file ${FILES})
  file(SHA256 ${file} hash)
  string(APPEND all " ${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUT} "#include \"kernel/kernel.h\"\nnamespace moka::kernel {\nstd::string_view build() { return \"${hash}\"; }\n}  // namespace moka::kernel\n")
