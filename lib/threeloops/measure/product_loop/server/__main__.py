"""python -m threeloops.measure.product_loop.server --model target --port 8000"""

import argparse
from dataclasses import fields

from threeloops.measure.product_loop import small_language_model
from threeloops.measure.product_loop.server.engine import Limits
from threeloops.measure.product_loop.server.running import serve

if __name__ == "__main__":
    reader = argparse.ArgumentParser(description="Serve a small language model on this machine's loopback address.")
    reader.add_argument("--model", choices=list(small_language_model.RECIPES), default="target")
    reader.add_argument("--port", type=int, default=8000)
    for limit in fields(Limits):
        reader.add_argument(f"--{limit.name.replace('_', '-')}", type=int, default=limit.default)
    given = vars(reader.parse_args())
    model, port = given.pop("model"), given.pop("port")
    serve(small_language_model.trained(model).decoder, model=model, port=port, limits=Limits(**given))
