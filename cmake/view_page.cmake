# SPDX-License-Identifier: Apache-2.0
# cmake -DNPM=npm -DSOURCE=web -DWORK=folder -P view_page.cmake
# Builds the viewer's page, WORK/viewer.html, with the packages of SOURCE/package-lock.json. npm fetches them when that
# file changes. Where they cannot be fetched the page is empty, and `moka view` says so.
file(MAKE_DIRECTORY ${WORK})
file(SHA256 ${SOURCE}/package-lock.json lock)
set(stamp ${WORK}/packages.stamp)
set(installed "")
if(EXISTS ${stamp})
  file(READ ${stamp} installed)
endif()
foreach(file package.json package-lock.json build.mjs tsconfig.json)
  file(COPY ${SOURCE}/${file} DESTINATION ${WORK})
endforeach()
if(NOT installed STREQUAL lock)
  execute_process(COMMAND ${NPM} ci --silent --ignore-scripts --no-audit --no-fund --no-update-notifier
    WORKING_DIRECTORY ${WORK} RESULT_VARIABLE failed ERROR_VARIABLE why OUTPUT_QUIET)
  if(failed)
    message(WARNING "This build has no viewer, because npm cannot fetch the packages of its page. "
      "To try again, remove ${WORK} and build.\n${why}")
    file(WRITE ${WORK}/viewer.html "")
    return()
  endif()
  file(WRITE ${stamp} ${lock})
endif()
file(REMOVE_RECURSE ${WORK}/src)
file(COPY ${SOURCE}/src DESTINATION ${WORK})
execute_process(COMMAND ${NPM} run build --silent WORKING_DIRECTORY ${WORK} COMMAND_ERROR_IS_FATAL ANY)
