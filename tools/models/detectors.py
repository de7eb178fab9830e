# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""The full-size detectors that export_models.py knows: architectures as published, random weights.

DEIMv2-S in its original module structure comes from the package libreyolo (MIT); everything else
is built from transformers' configurations (Apache-2.0).
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable

import torch
import torch.nn.functional as F
import transformers as tf
from torch import nn

COCO_CLASS_COUNT = 80
TOP_K = 300
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
NO_MEAN = (0.0, 0.0, 0.0)
NO_STD = (1.0, 1.0, 1.0)


@dataclasses.dataclass(frozen=True)
class Detector:
    """build: returns the model, initialised at random. to_deploy: what is exported, given the model
    after its weights were conditioned. mean, std: RGB, applied after division by 255. seed: of the
    weights. Where it is not 0, seed 0 puts a query on the edge of a selection: noise of 0.6 % on the
    encoder's features (more than float16 makes) exchanges a detection of four held-out images, and
    with the seed that is given none moves by more than 8 pixels or 0.05."""

    summary: str
    build: Callable[[], nn.Module]
    to_deploy: Callable[[nn.Module], nn.Module] = lambda model: model
    size: int = 640
    mean: tuple[float, float, float] = NO_MEAN
    std: tuple[float, float, float] = NO_STD
    seed: int = 0


def _hgnetv2_b0(stages: list[int]) -> tf.HGNetV2Config:
    return tf.HGNetV2Config(
        stem_channels=[3, 16, 16],
        stage_in_channels=[16, 64, 256, 512],
        stage_mid_channels=[16, 32, 64, 128],
        stage_out_channels=[64, 256, 512, 1024],
        stage_num_blocks=[1, 1, 2, 1],
        stage_numb_of_layers=[3, 3, 3, 3],
        stage_downsample=[False, True, True, True],
        stage_light_block=[False, False, True, True],
        stage_kernel_size=[3, 3, 5, 5],
        out_indices=stages,
        use_learnable_affine_block=True,
        embedding_size=16,
        hidden_sizes=[64, 256, 512, 1024],
    )


def _deimv2_s_transformers() -> nn.Module:
    backbone = tf.DINOv3ViTConfig(
        hidden_size=192,
        intermediate_size=768,
        num_hidden_layers=12,
        num_attention_heads=3,
        patch_size=16,
        image_size=640,
        out_indices=[4, 8, 12],
    )
    return tf.Deimv2ForObjectDetection(
        tf.Deimv2Config(
            backbone_config=backbone,
            encoder_hidden_dim=192,
            encoder_in_channels=[192] * 3,
            encoder_ffn_dim=512,
            depth_mult=0.67,
            hidden_expansion=0.34,
            d_model=192,
            decoder_in_channels=[192] * 3,
            decoder_ffn_dim=512,
            decoder_layers=4,
            decoder_n_points=[3, 6, 3],
            decoder_activation_function="silu",
            encoder_has_trailing_conv=False,
            freeze_backbone_batch_norms=False,
            num_labels=COCO_CLASS_COUNT,
        )
    )


# What DEIMv2-N and D-FINE-N share: two levels, at 1/16 and 1/32.
_NANO = dict(
    encoder_hidden_dim=128,
    encoder_in_channels=[512, 1024],
    feat_strides=[16, 32],
    encode_proj_layers=[1],
    encoder_ffn_dim=512,
    depth_mult=0.5,
    hidden_expansion=0.34,
    d_model=128,
    num_feature_levels=2,
    decoder_in_channels=[128] * 2,
    decoder_ffn_dim=512,
    decoder_layers=3,
    decoder_n_points=[6, 6],
    num_labels=COCO_CLASS_COUNT,
)


def _deimv2_n() -> nn.Module:
    return tf.Deimv2ForObjectDetection(
        tf.Deimv2Config(
            backbone_config=_hgnetv2_b0([3, 4]), decoder_activation_function="silu", **_NANO
        )
    )


def _dfine_n() -> nn.Module:
    return tf.DFineForObjectDetection(
        tf.DFineConfig(backbone_config=_hgnetv2_b0([3, 4]), **_NANO)
    )


def _dfine_s() -> nn.Module:
    return tf.DFineForObjectDetection(
        tf.DFineConfig(
            backbone_config=_hgnetv2_b0([2, 3, 4]),
            encoder_in_channels=[256, 512, 1024],
            depth_mult=0.34,
            hidden_expansion=0.5,
            decoder_layers=3,
            decoder_n_points=[3, 6, 3],
            num_labels=COCO_CLASS_COUNT,
        )
    )


def _rtdetr_r18(config_type, model_type, **options) -> nn.Module:
    backbone = tf.RTDetrResNetConfig(
        layer_type="basic",
        depths=[2, 2, 2, 2],
        hidden_sizes=[64, 128, 256, 512],
        out_indices=[2, 3, 4],
    )
    return model_type(
        config_type(
            backbone_config=backbone,
            encoder_in_channels=[128, 256, 512],
            hidden_expansion=0.5,
            decoder_layers=3,
            num_labels=COCO_CLASS_COUNT,
            **options,
        )
    )


def _deformable_detr_r18(two_stage: bool) -> nn.Module:
    backbone = tf.ResNetConfig(
        layer_type="basic",
        depths=[2, 2, 2, 2],
        hidden_sizes=[64, 128, 256, 512],
        out_features=["stage2", "stage3", "stage4"],
    )
    return tf.DeformableDetrForObjectDetection(
        tf.DeformableDetrConfig(
            backbone_config=backbone,
            encoder_layers=3,
            decoder_layers=3,
            num_queries=300,
            with_box_refine=True,
            two_stage=two_stage,
            num_labels=COCO_CLASS_COUNT,
        )
    )


class _LibreYolo(nn.Module):
    """libreyolo's DEIMv2 under the interface of transformers' detectors."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, pixel_values: torch.Tensor):
        out = self.model(pixel_values)
        return types.SimpleNamespace(logits=out["pred_logits"], pred_boxes=out["pred_boxes"])


def _libreyolo_deimv2_s(gather_sampling: bool) -> nn.Module:
    from libreyolo.models.deim import ms_deform
    from libreyolo.models.deimv2.nn import LibreDEIMv2Model

    # While it exports, libreyolo replaces GridSample by gathers. The published DEIMv2 has
    # GridSample nodes; the gather form is an input of its own.
    original = getattr(ms_deform, "_tenonnx_original", ms_deform._grid_sample_bilinear_manual)
    ms_deform._tenonnx_original = original

    def grid_sample(feature, grid, padding_mode="zeros", align_corners=False):
        return F.grid_sample(
            feature, grid, mode="bilinear", padding_mode=padding_mode, align_corners=align_corners
        )

    ms_deform._grid_sample_bilinear_manual = original if gather_sampling else grid_sample
    return LibreDEIMv2Model("s", COCO_CLASS_COUNT)


def _libreyolo_deploy(model: nn.Module) -> nn.Module:
    return _LibreYolo(model.deploy())


DETECTORS: dict[str, Detector] = {
    "deimv2_s": Detector(
        "DEIMv2-S, original module structure, 12 GridSample",
        lambda: _libreyolo_deimv2_s(gather_sampling=False),
        _libreyolo_deploy,
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        seed=3,
    ),
    "deimv2_s_gather": Detector(
        "DEIMv2-S with its sampling already written as gathers, no GridSample",
        lambda: _libreyolo_deimv2_s(gather_sampling=True),
        _libreyolo_deploy,
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        seed=3,
    ),
    "deimv2_s_transformers": Detector(
        "DEIMv2-S as transformers builds it",
        _deimv2_s_transformers,
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
    ),
    "deimv2_n": Detector("DEIMv2-N, two levels", _deimv2_n, seed=2),
    "dfine_n": Detector("D-FINE-N, two levels", _dfine_n),
    "dfine_s": Detector("D-FINE-S", _dfine_s),
    "rtdetr_r18": Detector(
        "RT-DETR, ResNet-18", lambda: _rtdetr_r18(tf.RTDetrConfig, tf.RTDetrForObjectDetection)
    ),
    "rtdetrv2_r18": Detector(
        "RT-DETRv2, ResNet-18",
        lambda: _rtdetr_r18(tf.RTDetrV2Config, tf.RTDetrV2ForObjectDetection),
    ),
    "rtdetrv2_r18_discrete": Detector(
        "RT-DETRv2, ResNet-18, discrete sampling, no GridSample",
        lambda: _rtdetr_r18(
            tf.RTDetrV2Config, tf.RTDetrV2ForObjectDetection, decoder_method="discrete"
        ),
    ),
    "deformable_detr_r18": Detector(
        "Deformable DETR, ResNet-18, 3 + 3 layers, 4 levels",
        functools.partial(_deformable_detr_r18, two_stage=True),
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
    ),
    "deformable_detr_r18_single": Detector(
        "Deformable DETR of one stage: learned queries, no selection before the decoder",
        functools.partial(_deformable_detr_r18, two_stage=False),
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
    ),
}
