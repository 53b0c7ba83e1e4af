# SPDX-License-Identifier: BSD-3-Clause
# A wheel must not need what a machine may lack: it is linked to the static libraries below
# TUTTI_WHEEL_ROOT, and the solver (src/plan/search/clp.h) is made of such, with the run-time library of
# its language inside.
target_sources(tutti_shared PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/static.c)

file(READ ${PROJECT_SOURCE_DIR}/src/plan/search/clp.h text)
string(REGEX MATCHALL "Clp_[A-Za-z]+\\)" functions "${text}")
string(REPLACE ")" "" functions "${functions}")
list(JOIN functions ";\n" names)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/solver.map "{ global: ${names}; local: *; };\n")
list(TRANSFORM functions PREPEND "LINKER:-u,")

file(GLOB libstdcxx ${TUTTI_WHEEL_ROOT}/usr/lib/gcc/*/*/libstdc++.a)
set(libraries ${TUTTI_WHEEL_ROOT}/usr/lib/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
add_library(tutti_solver SHARED static.c)
set_target_properties(tutti_solver PROPERTIES OUTPUT_NAME Clp SOVERSION 1
	LINK_DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/solver.map)
target_link_options(tutti_solver PRIVATE ${functions} LINKER:--no-undefined,--gc-sections,-s
	LINKER:--version-script=${CMAKE_CURRENT_BINARY_DIR}/solver.map)
# BLAS has an xerbla() in C, LAPACK one in Fortran, which would need that language's library: the
# first one found is taken.
target_link_libraries(tutti_solver PRIVATE ${libraries}/libClp.a ${libraries}/libCoinUtils.a
	${libraries}/blas/libblas.a ${libraries}/liblapack_pic.a ${libstdcxx} unwind m dl)
add_dependencies(tutti_python tutti_solver)
install(FILES $<TARGET_FILE:tutti_solver> DESTINATION lib RENAME libClp.so.1 COMPONENT python)
file(GLOB licenses ${TUTTI_WHEEL_ROOT}/licenses/*)
install(FILES ${licenses} DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT python)
