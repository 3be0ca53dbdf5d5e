# What packages need beyond the installation, where COLLET_PORTABLE is on: the shared libraries that a system may lack, the
# guides, the licences of what is linked in, and the SBOM. CPack makes a .deb and an archive of it;
# sdk/python/sdk_wheel.py makes the wheel.
if(NOT COLLET_PORTABLE)
  return()
endif()
if(NOT CMAKE_GENERATOR MATCHES "Ninja")
  message(FATAL_ERROR "COLLET_PORTABLE needs the generator Ninja, which can tell the headers that were compiled in")
endif()

# Installs a shared library under the name that programs look for.
function(collet_bundle library)
  file(REAL_PATH "${library}" file)
  execute_process(COMMAND "${CMAKE_READELF}" -d "${file}" OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
  if(NOT dynamic MATCHES "\\(SONAME\\)[^\n]*\\[([^]]+)\\]")
    message(FATAL_ERROR "${file} has no SONAME: it cannot be put into a package")
  endif()
  set(copy "${PROJECT_BINARY_DIR}/${COLLET_INSTALL_LIBRARIES_DIR}/${CMAKE_MATCH_1}")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/${COLLET_INSTALL_LIBRARIES_DIR}")
  file(COPY_FILE "${file}" "${copy}" ONLY_IF_DIFFERENT)
  install(PROGRAMS "${copy}" DESTINATION "${COLLET_INSTALL_LIBRARIES_DIR}")
  set_property(GLOBAL APPEND PROPERTY COLLET_BUNDLED "${file}=${COLLET_INSTALL_LIBRARIES_DIR}/${CMAKE_MATCH_1}")
endfunction()
collet_bundle("${COLLET_MPFR_LIBRARY}")
collet_bundle("${COLLET_GMP_LIBRARY}")

file(GLOB guides "${PROJECT_SOURCE_DIR}/docs/*.md" "${PROJECT_SOURCE_DIR}/docs/*.svg" "${PROJECT_SOURCE_DIR}/docs/*.json")
install(FILES ${guides} "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${COLLET_INSTALL_DOC_DIR}")

# The SBOM is made at installation, when everything is linked.
get_property(shipped GLOBAL PROPERTY COLLET_SHIPPED)
get_property(bundled GLOBAL PROPERTY COLLET_BUNDLED)
list(JOIN shipped "\n" shipped)
list(JOIN bundled "\n" bundled)
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/shipped.txt" CONTENT "${shipped}\n")
file(WRITE "${PROJECT_BINARY_DIR}/bundled.txt" "${bundled}\n")
install(CODE "execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND \"${Python3_EXECUTABLE}\" \"${PROJECT_SOURCE_DIR}/sdk/cmake/sbom.py\"
  --build \"${PROJECT_BINARY_DIR}\" --ninja \"${CMAKE_MAKE_PROGRAM}\" --readelf \"${CMAKE_READELF}\" --version \"${PROJECT_VERSION}\" --sysroot \"${CMAKE_SYSROOT}\"
  --installed \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\" --output \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${COLLET_INSTALL_DOC_DIR}\")")

set(CPACK_PACKAGE_NAME collet)
set(CPACK_PACKAGE_VENDOR "The Collet authors")
set(CPACK_PACKAGE_CONTACT "The Collet authors <authors@collet.invalid>")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/sdk/cmake/package_files.cmake")
string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" system)
set(CPACK_ARCHIVE_FILE_NAME "collet-${PROJECT_VERSION}-${system}")
set(CPACK_PACKAGE_FILE_NAME "${CPACK_ARCHIVE_FILE_NAME}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${COLLET_GLIBC}), libgcc-s1 (>= 7)")  # all that the files need (sdk_wheel.py)
set(CPACK_DEBIAN_PACKAGING_INSTALL_PREFIX /usr)  # package_files.cmake relies on it
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "cmake, g++, python3")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Collet reads HLO and StableHLO, compiles them for a vendor's backend and runs them.
The package has the tool, the libraries, the headers, templates of backends, the
conformance suite, and the cpu, gpu and interpreter backends, with LLVM in them.")
set(CPACK_GENERATOR "TGZ;DEB")
include(CPack)
