# cmake -DOUTPUT=FILE -DHEADERS=A,B,... -P interface.cmake: a header with the hash of others, by which a
# device that is loaded (src/device/module.h) and the program know that they mean the same structs.
string(REPLACE "," ";" HEADERS "${HEADERS}")
set(hashes "")
foreach(header ${HEADERS})
  file(SHA256 ${header} hash)
  string(APPEND hashes "${hash}")
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "/* Made by cmake/interface.cmake. */
#define LS_DEVICE_INTERFACE \"${hash}\"
")
