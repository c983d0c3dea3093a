# Fails when the documents in DOCS are not what PROGRAM writes into FRESH.
file(MAKE_DIRECTORY ${FRESH})
execute_process(COMMAND ${PROGRAM} ${FRESH} COMMAND_ERROR_IS_FATAL ANY)
foreach(name operations.md device-support.md operations)
  execute_process(COMMAND diff -r ${DOCS}/${name} ${FRESH}/${name} RESULT_VARIABLE differs)
  if(differs)
    message(FATAL_ERROR "docs/${name} is stale: run `make docs`")
  endif()
endforeach()
