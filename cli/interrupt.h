// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Ctrl-C and its like: the command says so, leaves nothing behind and dies of that signal.
#pragma once

namespace tenonnx::cli {

// To be called before any thread starts: they inherit that SIGINT, SIGTERM and SIGHUP are blocked,
// and one thread waits for these. A signal that was ignored (nohup) or blocked at the start stays
// so. Of a second signal, half a second after the first or later, the process dies at once.
void wait_for_interrupts();

// The command's work is done: an interrupt that comes now changes nothing any more. Where one is
// being dealt with, this does not return.
void end_interrupts();

}  // namespace tenonnx::cli
