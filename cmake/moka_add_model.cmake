# SPDX-License-Identifier: Apache-2.0
# moka_add_model(TARGET MODEL [LANGUAGE C++|C] [DESTINATION FOLDER] [NO_INSTALL])
#
# Compiles MODEL (.mlmodel or .mlpackage), puts the compiled folder beside the file that TARGET builds, and gives TARGET the
# class that `moka generate` writes in LANGUAGE (C++ by default). A changed model is compiled again. The compiled model is installed to
# DESTINATION, by default where TARGET's kind is installed: CMAKE_INSTALL_BINDIR or CMAKE_INSTALL_LIBDIR.
include_guard(GLOBAL)
include(GNUInstallDirs)

function(moka_add_model target model)
  cmake_parse_arguments(PARSE_ARGV 2 M "NO_INSTALL" "LANGUAGE;DESTINATION" "")
  if(M_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "moka_add_model: unknown argument '${M_UNPARSED_ARGUMENTS}'")
  elseif(NOT TARGET ${target})
    message(FATAL_ERROR "moka_add_model: '${target}' is not a target")
  elseif(NOT MOKA_PROGRAM)
    message(FATAL_ERROR "moka_add_model: the program 'moka' is not installed; set MOKA_PROGRAM to its path")
  endif()
  get_filename_component(model ${model} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT EXISTS ${model})
    message(FATAL_ERROR "moka_add_model: '${model}' does not exist")
  endif()
  if(NOT M_LANGUAGE)
    set(M_LANGUAGE C++)
  elseif(NOT M_LANGUAGE STREQUAL "C++" AND NOT M_LANGUAGE STREQUAL "C")
    message(FATAL_ERROR "moka_add_model: LANGUAGE ${M_LANGUAGE}: expected C++ or C")
  endif()
  get_filename_component(name ${model} NAME_WLE)
  set(parts ${model})
  if(IS_DIRECTORY ${model})
    file(GLOB_RECURSE parts CONFIGURE_DEPENDS ${model}/*)
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/moka/${target})
  set(compiled ${folder}/${name}.mlmodelc)
  add_custom_command(OUTPUT ${compiled}/coremldata.bin DEPENDS ${parts} ${MOKA_PROGRAM} VERBATIM
    COMMAND ${MOKA_PROGRAM} compile ${model} ${folder} COMMENT "Compiling ${name}")
  execute_process(COMMAND ${MOKA_PROGRAM} generate ${model} ${folder} --language ${M_LANGUAGE} --dry-run
    OUTPUT_VARIABLE sources OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE problem RESULT_VARIABLE result)
  if(result)
    message(FATAL_ERROR "${problem}")
  endif()
  string(REPLACE "\n" ";" sources "${sources}")
  add_custom_command(OUTPUT ${sources} DEPENDS ${parts} ${MOKA_PROGRAM} VERBATIM
    COMMAND ${MOKA_PROGRAM} generate ${model} ${folder} --language ${M_LANGUAGE} COMMENT "Generating the class of ${name}")

  target_sources(${target} PRIVATE ${sources} ${compiled}/coremldata.bin)
  set_source_files_properties(${compiled}/coremldata.bin PROPERTIES HEADER_FILE_ONLY ON GENERATED ON)
  target_include_directories(${target} PRIVATE ${folder})
  target_link_libraries(${target} PRIVATE moka::moka ${CMAKE_DL_LIBS})
  # A model that changes is put beside the target although nothing else does.
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${compiled}/coremldata.bin)
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -E rm -rf $<TARGET_FILE_DIR:${target}>/${name}.mlmodelc
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${compiled} $<TARGET_FILE_DIR:${target}>/${name}.mlmodelc)
  if(NOT M_NO_INSTALL)
    if(NOT M_DESTINATION)
      get_target_property(type ${target} TYPE)
      set(M_DESTINATION ${CMAKE_INSTALL_LIBDIR})
      if(type STREQUAL "EXECUTABLE")
        set(M_DESTINATION ${CMAKE_INSTALL_BINDIR})
      endif()
    endif()
    install(DIRECTORY ${compiled} DESTINATION ${M_DESTINATION})
  endif()
endfunction()
