# SPDX-License-Identifier: Apache-2.0
"""Nets of libraries that no kernel of Moka was written for. A name is the library and the library's own name, for example
"timm.mixnet_s". A run times them when they are named; "zoo" names them all."""

import inspect
import types

# Sides of the square images; timm's nets need its version in requirements.txt.
TIMM = {
    "botnet26t_256": 256, "caformer_s18": 224, "cait_xxs24_224": 224, "coat_lite_tiny": 224, "convformer_s18": 224,
    "convit_tiny": 224, "convnextv2_atto": 224, "crossvit_9_240": 240, "cspdarknet53": 256, "darknet53": 256, "davit_tiny": 224,
    "dla34": 224, "dpn68": 224, "eca_nfnet_l0": 224, "ecaresnet50t": 224, "edgenext_small": 256, "efficientformer_l1": 224,
    "efficientformerv2_s0": 224, "efficientnet_lite0": 224, "efficientvit_b1": 224, "efficientvit_m0": 224,
    "ese_vovnet19b_dw": 224, "eva02_tiny_patch14_224": 224, "fastvit_t8": 256, "fbnetc_100": 224, "focalnet_tiny_srf": 224,
    "gernet_s": 224, "ghostnetv2_100": 224, "gmlp_s16_224": 224, "hardcorenas_a": 224, "hgnetv2_b0": 224, "hiera_tiny_224": 224,
    "hrnet_w18_small": 224, "inception_next_tiny": 224, "lambda_resnet26t": 256, "lcnet_100": 224, "levit_192": 224,
    "mambaout_femto": 224, "mixer_s32_224": 224, "mixnet_s": 224, "mobilenet_edgetpu_v2_s": 224, "mobilenetv4_conv_small": 224,
    "mobileone_s1": 224, "mobilevit_s": 256, "mobilevitv2_100": 256, "mvitv2_tiny": 224, "nest_tiny": 224, "nextvit_small": 224, "nf_resnet50": 224,
    "pit_s_224": 224, "poolformer_s12": 224, "pvt_v2_b0": 224, "rdnet_tiny": 224, "regnetx_004": 224, "repvgg_a0": 224,
    "repvit_m1": 224, "res2net50_14w_8s": 224, "resmlp_12_224": 224, "resnest14d": 224, "resnet18d": 224, "resnetv2_50": 224,
    "rexnet_100": 224, "sehalonet33ts": 256, "selecsls42b": 224, "semnasnet_100": 224, "sequencer2d_s": 224, "seresnet50": 224,
    "shvit_s1": 224, "skresnet18": 224, "starnet_s1": 224, "swiftformer_xs": 224, "swinv2_tiny_window8_256": 256,
    "tiny_vit_5m_224": 224, "tinynet_a": 224, "twins_svt_small": 224, "vgg11_bn": 224, "visformer_tiny": 224,
    "vit_tiny_patch16_224": 224, "volo_d1_224": 224, "wide_resnet50_2": 224, "xception41": 299, "xcit_tiny_12_p16_224": 224,
}

# Sides of the images or, in a tuple, frames and sides of the videos.
TORCHVISION = {
    "alexnet": 224, "fcn_resnet50": 256, "maxvit_t": 224, "mc3_18": (16, 112), "r2plus1d_18": (16, 112), "r3d_18": (16, 112),
    "resnet18": 224, "s3d": (16, 224), "swin_v2_t": 256,
}

# Encoders of 128 tokens, by the type of the configuration and what differs from its defaults.
TRANSFORMERS = {
    "albert": {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
    "convbert": {"num_hidden_layers": 4},
    "electra": {},
    "ernie": {"num_hidden_layers": 4},
    "mobilebert": {"num_hidden_layers": 8},
    "modernbert": {"num_hidden_layers": 4, "reference_compile": False},
    "mpnet": {"num_hidden_layers": 4},
    "nystromformer": {"num_hidden_layers": 4, "max_position_embeddings": 512},
    "rembert": {"num_hidden_layers": 4, "hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536},
    "roberta": {"num_hidden_layers": 4},
    "roformer": {"num_hidden_layers": 4},
    "squeezebert": {},
    "xlm-roberta": {"num_hidden_layers": 4},
}
TOKENS = 128
WORDS = 1000


def names():
    return [f"{library}.{name}" for library, (nets, _) in LIBRARIES.items() for name in nets]


def module(name):
    """The definitions of a net of the library, as a file in this folder would contain them."""
    library, own = name.split(".", 1)
    nets, make = LIBRARIES[library]
    model, inputs = make(own, nets[own])
    family = "transformer" if library == "transformers" else "segmentation" if own.startswith("fcn_") else "classification"
    return types.SimpleNamespace(TITLE=f"{own} ({library})", FAMILY=family, OUTPUTS=("output",), model=model, inputs=inputs)


def source(name):
    """Everything that defines the net."""
    library, own = name.split(".", 1)
    nets, make = LIBRARIES[library]
    return "".join([name, repr(nets[own]), *map(inspect.getsource, (make, images, changed))]).encode()


def of_timm(name, size):
    def model():
        import timm

        timm.layers.set_fused_attn(False)
        return timm.create_model(name, pretrained=False)

    return model, images(size)


def of_torchvision(name, size):
    def model():
        import torch
        import torchvision

        if name.startswith("fcn_"):
            return changed(torchvision.models.get_model(name, weights=None, weights_backbone=None), answer=lambda found: found["out"])
        made = torchvision.models.get_model(name, weights=None)
        # coremltools converts no adaptive average of videos.
        if isinstance(getattr(made, "avgpool", None), torch.nn.AdaptiveAvgPool3d):
            made.avgpool = changed(torch.nn.Identity(), answer=lambda x: x.mean((2, 3, 4), keepdim=True))
        return made

    return model, images(size)


def of_transformers(name, settings):
    def model():
        from transformers import AutoConfig, AutoModel

        config = AutoConfig.for_model(name, attn_implementation="eager", **settings)
        return changed(AutoModel.from_config(config), answer=lambda found: found[0])

    def inputs(rng):
        from blocks.inputs import tokens

        return {"ids": 2 + tokens(rng, TOKENS, WORDS)}

    return model, inputs


def images(size):
    def inputs(rng):
        import numpy as np

        from blocks.inputs import image

        if isinstance(size, tuple):
            frames, side = size
            return {"video": np.stack([image(rng, side, side) for _ in range(frames)], 2)}
        return {"image": image(rng, size, size)}

    return inputs


def changed(model, answer):
    """The model with another answer."""
    from torch import nn

    class Changed(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return answer(self.model(x))

    return Changed()


LIBRARIES = {"timm": (TIMM, of_timm), "torchvision": (TORCHVISION, of_torchvision), "transformers": (TRANSFORMERS, of_transformers)}
