// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Protobuf keeps one table of message descriptions per process and ends the process where
// onnx.proto is registered twice. The program that loads this library has usually registered it
// already, and Debian's protobuf exists for shared libraries as a shared one only, so the table
// cannot be kept apart. Messages need their registration for reflection (text form, comparison by
// field) alone, which nothing here uses; so the linker (--wrap) puts this function in place of it.
#include <cstddef>

extern "C" void leave_out_registration(void* runner, const void* table) __asm__(
    "__wrap__ZN6google8protobuf8internal20AddDescriptorsRunnerC1EPKNS1_15DescriptorTableE");

void leave_out_registration(void* /*runner*/, const void* /*table*/) {}
