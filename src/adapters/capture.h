// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Another way to ort/capture.h.
#pragma once

#include "ort/capture.h"
