# liblockstep, static and shared, and the program. Both wait until src/api exists.
if(NOT TARGET ls_api)
  return()
endif()
include(GNUInstallDirs)

# The objects of all modules; those that ls_ops_cpu has from elsewhere are named by themselves.
set(objects "")
foreach(module ${LS_MODULES} ${LS_VECTOR_MODULES})
  list(APPEND objects $<TARGET_OBJECTS:${module}>)
endforeach()
# What the modules link, without the modules themselves.
set(libraries "")
foreach(module ${LS_MODULES})
  get_target_property(links ${module} INTERFACE_LINK_LIBRARIES)
  list(APPEND libraries ${links})
endforeach()
list(FILTER libraries EXCLUDE REGEX "^ls_")
list(APPEND libraries ls_openmp)
list(REMOVE_DUPLICATES libraries)

# The static library is one object in which everything but the public functions is local, so that
# no name of ours can meet one of a program's.
set(whole ${CMAKE_BINARY_DIR}/lockstep_whole.o)
add_custom_command(OUTPUT ${whole}
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${whole} ${objects}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${whole}
  DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM COMMENT "Hiding what is not public")
add_library(lockstep_static STATIC ${whole})
set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
add_library(lockstep_shared SHARED ${objects})
foreach(library lockstep_static lockstep_shared)
  target_link_libraries(${library} PRIVATE ${libraries} ls_flags)
  target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME lockstep LINKER_LANGUAGE C
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
    INSTALL_RPATH_USE_LINK_PATH ON) # oneDNN may lie in a folder of its own
endforeach()
install(TARGETS lockstep_static)
install(TARGETS lockstep_shared EXPORT lockstep INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set_target_properties(lockstep_shared PROPERTIES EXPORT_NAME lockstep)
if(NOT LOCKSTEP_SANITIZE) # a sanitizer's own functions come with the program
  target_link_options(lockstep_shared PRIVATE -Wl,--no-undefined)
endif()

# The program is written with the public header alone: no other folder is on its path. Tests link it
# with a fake of the library, and with a faulty one.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cli/*.c
     ${CMAKE_SOURCE_DIR}/src/monitor/*.c)
list(FILTER sources EXCLUDE REGEX "/main\\.c$")
if(sources)
  add_library(ls_command_line STATIC ${sources})
  target_link_libraries(ls_command_line PUBLIC ls_flags)
  target_compile_options(ls_command_line PRIVATE ${LS_PLAIN_OPTIONS})
  add_executable(lockstep_program ${CMAKE_SOURCE_DIR}/src/cli/main.c)
  target_link_libraries(lockstep_program PRIVATE ls_command_line lockstep_static)
  set_target_properties(lockstep_program PROPERTIES OUTPUT_NAME lockstep
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS lockstep_program)
  # Links of the names that it answers to as Caffe's programs.
  file(READ ${CMAKE_SOURCE_DIR}/src/cli/links.c links)
  string(REGEX MATCHALL "\\{\"[a-z0-9_.]+\"," links "${links}")
  list(TRANSFORM links REPLACE "[{\",]" "")
  foreach(link ${links})
    list(APPEND make_links COMMAND ${CMAKE_COMMAND} -E create_symlink lockstep ${link})
    install(CODE "file(CREATE_LINK lockstep \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/${link}\" SYMBOLIC)")
  endforeach()
  add_custom_command(TARGET lockstep_program POST_BUILD ${make_links}
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  # What the program says of itself: manual pages, and scripts with which shells complete.
  set(pages ${CMAKE_BINARY_DIR}/share/man1)
  set(scripts ${CMAKE_BINARY_DIR}/share/completion)
  if(NOT CMAKE_CROSSCOMPILING AND NOT LOCKSTEP_SANITIZE)
    install(CODE "file(MAKE_DIRECTORY ${pages} ${scripts})
      foreach(shell bash zsh fish)
        execute_process(COMMAND ${CMAKE_BINARY_DIR}/lockstep completion \${shell}
          OUTPUT_FILE ${scripts}/\${shell} COMMAND_ERROR_IS_FATAL ANY)
      endforeach()
      execute_process(COMMAND ${CMAKE_BINARY_DIR}/lockstep help --man-pages ${pages}
        COMMAND_ERROR_IS_FATAL ANY)")
    install(DIRECTORY ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR})
    install(FILES ${scripts}/bash RENAME lockstep
      DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${scripts}/zsh RENAME _lockstep
      DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
    install(FILES ${scripts}/fish RENAME lockstep.fish
      DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endif()
endif()

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/lockstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# To read, and as a beginning of one's own: the library has them inside.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/share/maps DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep)

# pkg-config: the libraries behind ours are private, needed by a static link only.
set(LS_PRIVATE_LIBS "")
foreach(library ${libraries})
  if(TARGET ${library})
    continue() # has a package name below, or is a flag of the compiler
  endif()
  get_filename_component(folder ${library} DIRECTORY)
  get_filename_component(name ${library} NAME_WE)
  string(REGEX REPLACE "^lib" "-l" name ${name})
  if(folder AND NOT folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
    set(name ${library} -Wl,-rpath,${folder}) # where no linker looks, nor a program that starts
  endif()
  list(APPEND LS_PRIVATE_LIBS ${name})
endforeach()
list(APPEND LS_PRIVATE_LIBS -lgomp -pthread -lm)
list(REMOVE_DUPLICATES LS_PRIVATE_LIBS)
list(JOIN LS_PRIVATE_LIBS " " LS_PRIVATE_LIBS)
# The prefix follows from where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH LS_PREFIX_FROM_PC ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_SOURCE_DIR}/cmake/lockstep.pc.in ${CMAKE_BINARY_DIR}/lockstep.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/lockstep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# find_package(lockstep) gives the target lockstep::lockstep, the shared library, which needs nothing else.
# A version fits where the soname does.
include(CMakePackageConfigHelpers)
set(configuration ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
install(EXPORT lockstep NAMESPACE lockstep:: FILE lockstepConfig.cmake DESTINATION ${configuration})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/lockstepConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/lockstepConfigVersion.cmake DESTINATION ${configuration})
