# Run by CPack when a package's files are in place. A .deb has the Python module where Debian's Python looks for it, too, and the
# licence where Debian wants it.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(root "${CPACK_TEMPORARY_DIRECTORY}/usr")
  if(NOT EXISTS "${root}/lib/collet/python/collet")
    message(FATAL_ERROR "the Python module is not in ${root}")
  endif()
  file(MAKE_DIRECTORY "${root}/lib/python3/dist-packages")
  file(CREATE_LINK "../../collet/python/collet" "${root}/lib/python3/dist-packages/collet" SYMBOLIC)
  file(CREATE_LINK "LICENSE" "${root}/share/doc/collet/copyright" SYMBOLIC)
endif()

# Packages of one commit are the same bytes.
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND find "${CPACK_TEMPORARY_DIRECTORY}" -exec touch --no-dereference "--date=@$ENV{SOURCE_DATE_EPOCH}" "{}" +
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
